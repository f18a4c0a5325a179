"""The process beside a VM and its PID 1 monitor."""
