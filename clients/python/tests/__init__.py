"""The tests; the broker they run against is the real one."""
