"""May a call happen, and how far may it reach?"""
