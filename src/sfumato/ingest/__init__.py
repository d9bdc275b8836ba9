"""Files and frames -> typed rows. How a value is read depends on its declared type and on that value alone."""
