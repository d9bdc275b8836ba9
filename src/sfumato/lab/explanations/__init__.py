"""Pictures and small experiments that explain a definition: mechanisms, epsilon, neighbours, errors, a class poll."""
