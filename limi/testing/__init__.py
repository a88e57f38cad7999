"""The suites that a method, model or generator must pass, shipped for third parties."""
