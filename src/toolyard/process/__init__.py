"""One child process from its start to its end; nothing else in the package starts processes."""
