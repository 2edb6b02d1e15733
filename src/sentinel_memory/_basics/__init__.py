"""Parts that know nothing of memories: checks, numbers, times, JSON data, words, heaps."""
