"""What tests share: a clock, a plain model, the literal packer, tokenizers."""
