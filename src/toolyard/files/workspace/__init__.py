"""What file tools do in a workspace, for a process inside the sandbox that has nothing installed."""
