"""The disk, safely: what is obeyed, written, walked over or removed goes through here."""
