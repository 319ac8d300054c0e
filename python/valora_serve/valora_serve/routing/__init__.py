"""Which replica a request goes to: by the time that it is expected to cost there."""
