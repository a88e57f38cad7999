"""Between limi and the machine: files, clocks, threads, foreign code, text that is shown."""
