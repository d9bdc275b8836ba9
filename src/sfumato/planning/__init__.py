"""From a Query to a BoundedPlan. This package is not trusted: the kernel certifies its plans."""
