"""Attack every reader of the package and its service, and see what gives way.

    python -m benchmarks.attack --count 100000 --jobs 2 --keep faults/ --json attack.json
    python -m benchmarks.attack --at png:123            # one input again, by its name
    python -m benchmarks.attack --http --json http.json
    python -m benchmarks.attack --kill 20

The first form makes small valid files of every kind (`seeds`), damages each in ways that know the format
(`mutations`: chunks, boxes, directories, archives, trees of values; checksums are often repaired so that the
damage reaches the code behind them), and hands them to the package (`readers`). An input must end as a result
or as one of the package's own errors. Everything else is a fault: another exception, more than 300 MB of
memory or 5 s of CPU time for one input, an input without end, an open file, temporary file, thread or process
that is left behind, a message that is not one short line about the file, and a file that decodes to other
values although its checksum covers the damage. Known bombs (`bombs`) always run first. All inputs of one job
pass through one process; a second one watches it, so that a crash or a hang is a fault of one input and the
run goes on.

`--http` starts `primaldepth serve` as its users do and attacks it on the loopback device: see `served`.
`--kill` ends the service or its worker with SIGKILL under load: see `kill`.
"""
