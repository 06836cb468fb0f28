"""Who may do what: policy files, decisions through Cedar, and cases that a policy is tested with."""
