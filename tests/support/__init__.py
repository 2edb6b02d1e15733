"""Parts that several tests use: clocks, entries, a plain model, the literal packer, tokenizers."""
