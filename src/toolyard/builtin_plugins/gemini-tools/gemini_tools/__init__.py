"""The tools that Gemini models know, on the file tools and the shells of the application."""
