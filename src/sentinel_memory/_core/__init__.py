"""The inside of ``Memory``; nothing else imports it, so its names may change freely."""
