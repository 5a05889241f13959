"""Folders and files of the application's own, also where tools work: by handles, never by a link, and known as ours."""
