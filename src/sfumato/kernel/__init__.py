"""The trusted kernel: everything that a privacy proof rests on. It imports nothing of ours but `errors`."""
