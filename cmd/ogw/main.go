package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"ogw/fusemount/holder"
	"ogw/fusemount/notifier"
)

// heapSample is how many bytes are allocated between two samples of the heap
// profile: at the runtime's 512 KiB, small requests spend 1 % of their time on
// them.
const heapSample = 8 << 20

func main() {
	runtime.MemProfileRate = heapSample
	if helper := helperProcess(os.Args); helper != nil { // nothing else: it is to be small
		if err := helper(); err != nil {
			os.Exit(exitFailure)
		}
		return
	}
	env := &environment{stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), args: os.Args}
	env.ready = inheritedPipe(env.getenv)
	os.Exit(run(context.Background(), env, os.Args))
}

// helperProcess returns the main function of the processes that mounts which
// survive start beside a server; nil for other command lines.
func helperProcess(args []string) func() error {
	switch {
	case len(args) == 3 && args[1] == holder.Command:
		return func() error { return holder.Run(args[2]) }
	case len(args) == 2 && args[1] == notifier.Command:
		return notifier.Run
	}
	return nil
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, env *environment, args []string) int {
	app := newApp(env)
	args, err := helperCall(app, args)
	if err != nil {
		err = &exitError{exitUsage, err}
	} else {
		err = app.RunContext(ctx, permute(app, familiar(args)))
	}
	if err = errors.Join(err, env.unsaid); err == nil {
		return exitOK
	}
	if env.ready.pending() {
		// The parent says it; the terminal is not ours.
		if e := env.ready.send(report{message(err), exitCode(err)}); e == nil {
			return exitCode(err)
		}
	}
	if text := message(err); text != "" {
		fmt.Fprintf(env.stderr, "ogw: %s\n", text)
	}
	return exitCode(err)
}
