"""What a person sees of a chat, and where they type: on any terminal, in as few lines as tell it."""
