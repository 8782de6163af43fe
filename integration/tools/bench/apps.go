package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ogw/integration/tools/bench/fusebench"
)

const (
	// restAfter is when the memory is looked at that a run leaves the server with.
	restAfter = time.Minute
	// restMiB is what it may have then.
	restMiB = 200
	restRow = "memory a minute after"
)

// appsSuite measures what programs do on mounts beside a plain directory, of equal
// durability: each row through /dev/fuse and through io_uring, and where it can beside the
// file system that stores nothing.
func appsSuite(e *env) error {
	defer keepSwitch()()
	apps := slices.DeleteFunc(fusebench.Apps(), func(a fusebench.App) bool { return !e.appWanted(&a) })
	var errs []error
	for len(apps) > 0 {
		n := slices.IndexFunc(apps, func(a fusebench.App) bool { return a.Options != apps[0].Options || a.Floor != apps[0].Floor })
		if n < 0 {
			n = len(apps)
		}
		errs = append(errs, e.appsOf(apps[:n]))
		apps = apps[n:]
	}
	return errors.Join(errs...)
}

// appWanted reports whether a row is asked for and can run.
func (e *env) appWanted(a *fusebench.App) bool {
	if !e.rowsWanted.MatchString(a.Name) {
		return false
	}
	for _, name := range a.Needs {
		if _, err := fusebench.Program(name); err != nil {
			fmt.Printf("  %s: left out, no %s\n", a.Name, name)
			return false
		}
	}
	return true
}

// appsOf measures rows with the same options on two servers, each with a mount.
func (e *env) appsOf(apps []fusebench.App) error {
	var list []appTarget
	for _, over := range []string{"io_uring=off", "io_uring=on"} {
		options := "allow_other," + over
		if apps[0].Options != "" {
			options += "," + apps[0].Options
		}
		t, stop, err := startMount(e, options)
		if err != nil {
			fmt.Printf("  not with %s: %v\n", options, err)
			continue
		}
		defer stop()
		list = append(list, appTarget{t, over})
	}
	plain := filepath.Join(e.dir, "plain")
	if err := os.MkdirAll(plain, 0o755); err != nil {
		return err
	}
	list = append(list, appTarget{fusebench.Target{Dir: plain}, ""})
	if apps[0].Floor {
		noop, err := startNoop(e)
		if err != nil {
			return err
		}
		defer noop.stop()
		list = append(list, appTarget{fusebench.Target{Dir: noop.dir}, ""})
	}
	return e.addApps(list, apps)
}

// letIn opens the way to a folder below the scratch folder: PostgreSQL runs as somebody else.
func (e *env) letIn(dir string) error {
	for ; len(dir) >= len(e.dir); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode()&0o011 == 0o011 {
			continue
		}
		if err := os.Chmod(dir, info.Mode()|0o011); err != nil {
			return err
		}
	}
	return nil
}

// appTarget is a file system that apps run on.
type appTarget struct {
	fusebench.Target
	over string // "" for the plain directory and the file system that stores nothing
}

func (e *env) addApps(list []appTarget, apps []fusebench.App) error {
	targets := make([]fusebench.Target, len(list))
	for i := range list {
		targets[i] = list[i].Target
		if err := e.letIn(targets[i].Dir); err != nil {
			return err
		}
	}
	got, err := fusebench.MeasureApps(targets, apps, fusebench.AppScale())
	if err != nil {
		return err
	}
	plain := slices.IndexFunc(list, func(t appTarget) bool { return t.over == "" })
	for n := range apps {
		for i := range list[:plain] {
			e.add(appRow(&apps[n], &list[i], got[i][n], got[plain:], n))
		}
	}
	if !e.rowsWanted.MatchString(restRow) {
		return nil
	}
	time.Sleep(restAfter)
	for _, t := range list[:plain] {
		bytes, err := resident(t.PID)
		if err != nil {
			return err
		}
		e.add(row{Name: restRow + ", " + t.over, Value: float64(bytes) / mib, Unit: "MiB",
			Limit: restMiB, LimitName: "what it may have", Target: 1})
	}
	return nil
}

// appRow is an app's figure beside the plain directory's, which comes first in others, and
// beside that of the file system that stores nothing.
func appRow(a *fusebench.App, t *appTarget, r fusebench.Result, others [][]fusebench.Result, n int) row {
	x := row{Name: a.Name + ", " + t.over, Value: r.Rate, Unit: r.Unit, CPU: r.CPU,
		Limit: others[0][n].Rate, LimitName: "plain directory", Target: a.Device, Note: fmt.Sprintf("CPU %.1f us", r.CPU)}
	if t.over == "io_uring=on" {
		x.Target = a.Ring
	}
	if a.Least != 0 {
		x.Note += fmt.Sprintf("  %.0f %% of the plain directory", 100*r.Rate/x.Limit)
		x.Limit, x.LimitName = a.Least, "what is wanted"
	}
	if len(others) > 1 {
		x.Note += fmt.Sprintf("  no-op: %s, %.0f %% of the plain directory", number(others[1][n].Rate), 100*others[1][n].Rate/others[0][n].Rate)
	}
	return x
}
