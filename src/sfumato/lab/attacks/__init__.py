"""One file per attack. Each attacks a naive release and the same release by Sfumato."""
