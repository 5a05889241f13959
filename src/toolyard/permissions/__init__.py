"""May this call happen?"""
