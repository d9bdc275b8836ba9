"""Ask a service over HTTP, with the interface of a Curator. No data and no key is on this side."""
