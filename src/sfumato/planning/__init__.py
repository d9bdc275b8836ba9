"""From a Query to a BoundedPlan. Clever, and so not believed: the kernel certifies what comes out."""
