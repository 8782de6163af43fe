package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ogw/cmd/ogw/config"
	"ogw/cmd/ogw/mounts"
	"ogw/httpapi/admin"
)

// mountOptions are what -o says, in the words of mount(8).
type mountOptions struct {
	mount   admin.Mount
	dir     string   // data folder; "" is the configured one
	config  string   // configuration file
	set     []string // SECTION.KEY=VALUE
	metrics string   // address of /metrics
	remount bool     // change a mount that is there
	flags   []string // those that a remount changes, in order
	fixed   []string // those that it cannot change
	// wait is how long to wait for a process that serves the folder; with it
	// the folder is never opened by the mount itself.
	wait time.Duration
}

// mountOption is an option that means something to us.
type mountOption struct {
	name  string
	value string // what the value is, in messages; "" takes none
	set   func(o *mountOptions, value string) error
}

// ownOptions are the options that mean something to us.
func ownOptions() []mountOption {
	flag := func(name string, set func(o *mountOptions)) mountOption {
		return mountOption{name, "", func(o *mountOptions, _ string) error {
			set(o)
			return nil
		}}
	}
	text := func(name, what string, field func(o *mountOptions) *string) mountOption {
		return mountOption{name, what, func(o *mountOptions, v string) error {
			*field(o) = v
			return nil
		}}
	}
	seconds := func(name string, field func(o *mountOptions) **float64) mountOption {
		return mountOption{name, "SECONDS", func(o *mountOptions, v string) error {
			f, err := strconv.ParseFloat(v, 64)
			if err != nil || f < 0 || f > maxKernelCache.Seconds() {
				return fmt.Errorf("%q is not a number of seconds up to %.0f", v, maxKernelCache.Seconds())
			}
			*field(o) = &f
			return nil
		}}
	}
	return []mountOption{
		text("dir", "FOLDER", func(o *mountOptions) *string { return &o.dir }),
		text("config", "FILE", func(o *mountOptions) *string { return &o.config }),
		{"set", "SECTION.KEY=VALUE", func(o *mountOptions, v string) error {
			o.set = append(o.set, v)
			return nil
		}},
		text("subtree", "PATH", func(o *mountOptions) *string { return &o.mount.Subtree }),
		text("fsname", "NAME", func(o *mountOptions) *string { return &o.mount.Source }),
		text("metrics", "ADDRESS", func(o *mountOptions) *string { return &o.metrics }),
		{"wait", "TIME", func(o *mountOptions, v string) (err error) {
			if o.wait, err = time.ParseDuration(v); err != nil || o.wait <= 0 {
				return fmt.Errorf("%q is not a time such as 30s", v)
			}
			return nil
		}},
		flag("ro", func(o *mountOptions) { o.mount.ReadOnly = true }),
		flag("rw", func(o *mountOptions) { o.mount.ReadOnly = false }),
		flag("allow_other", func(o *mountOptions) { o.mount.AllowOther = true }),
		flag("nonempty", func(o *mountOptions) { o.mount.NonEmpty = true }),
		flag("survive", func(o *mountOptions) { o.mount.Survive = true }),
		{"abandon", "TIME", func(o *mountOptions, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				return fmt.Errorf("%q is not a time such as 1h", v)
			}
			seconds := d.Seconds()
			o.mount.Abandon = &seconds
			return nil
		}},
		flag("writeback", func(o *mountOptions) { o.mount.Writeback = true }),
		flag("flush_behind", func(o *mountOptions) { o.mount.FlushBehind = true }),
		flag("no_handles", func(o *mountOptions) { o.mount.NoHandles = true }),
		{"io_uring", "auto|on|off", func(o *mountOptions, v string) error {
			if _, ok := mounts.Transport(v); !ok {
				return fmt.Errorf("%q is not auto, on or off", v)
			}
			o.mount.IOUring = v
			return nil
		}},
		seconds("entry_timeout", func(o *mountOptions) **float64 { return &o.mount.EntryTimeout }),
		seconds("attr_timeout", func(o *mountOptions) **float64 { return &o.mount.AttrTimeout }),
	}
}

// maxKernelCache bounds entry_timeout and attr_timeout: a mistyped number
// should not make a lost invalidation last for ever.
const maxKernelCache = 24 * time.Hour

// kernelFlags are passed on to the kernel.
var kernelFlags = []string{"suid", "nosuid", "dev", "nodev", "exec", "noexec", "noatime", "nodiratime", "nosymfollow", "sync"}

// defaultFlags are what holds without one of kernelFlags.
var defaultFlags = map[string]string{"atime": "noatime", "relatime": "noatime", "diratime": "nodiratime", "symfollow": "nosymfollow", "async": "sync"}

// refusedOptions are those of mount(8) that ask for what we do not have.
var refusedOptions = map[string]string{
	"strictatime": "reads move access times as relatime says; there is nothing stricter",
	"lazytime":    "access times are always stored later, and modification times with the data; leave it out",
	"dirsync":     "a change in a directory is durable after its fsync",
	"mand":        "locks are advisory",
}

// otherOptions are addressed to mount(8), systemd or the kernel, or name what
// is always so here; a remount brings what the mount table shows. Like others, we
// take and ignore them.
var otherOptions = []string{
	"defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group", "nofail", "_netdev",
	"norelatime", "nostrictatime", "nolazytime", "nomand", "silent", "loud",
	"default_permissions", "subtype", "comment", "helper", "uhelper", "user_id", "group_id", "rootmode", "max_read",
}

// parse adds the options of one -o. Those that nobody knows are errors,
// unless sloppy (mount -s).
func (o *mountOptions) parse(list string, sloppy bool) error {
	own := ownOptions()
	for _, word := range splitOptions(list) {
		name, value, hasValue := strings.Cut(word, "=")
		i := slices.IndexFunc(own, func(x mountOption) bool { return x.name == name })
		switch {
		case i >= 0 && (own[i].value != "") != hasValue:
			if hasValue {
				return fmt.Errorf("mount option %s takes no value", name)
			}
			return fmt.Errorf("mount option %s needs a value: %s=%s", name, name, own[i].value)
		case i >= 0:
			if err := own[i].set(o, value); err != nil {
				return fmt.Errorf("mount option %s: %w", name, err)
			}
			switch name {
			case "ro", "rw", "allow_other": // the last is compared
				o.flags = append(o.flags, name)
			default:
				o.fixed = append(o.fixed, name)
			}
		case slices.Contains(kernelFlags, name) && !hasValue:
			o.mount.Flags = append(o.mount.Flags, name)
			o.flags = append(o.flags, name)
		case defaultFlags[name] != "" && !hasValue:
			o.mount.Flags = slices.DeleteFunc(o.mount.Flags, func(f string) bool { return f == defaultFlags[name] })
			if name != "async" { // what cannot be changed
				o.flags = append(o.flags, name)
			}
		case refusedOptions[name] != "":
			return fmt.Errorf("mount option %s: %s", name, refusedOptions[name])
		case name == "remount" && !hasValue:
			o.remount = true
		case word == "" || slices.Contains(otherOptions, name) ||
			strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "X-") || sloppy:
		default:
			return fmt.Errorf("unknown mount option %q%s", name, config.Suggestion(name, optionNames()))
		}
	}
	return nil
}

// addDropped adds the flags that mount(8) drops before it calls a helper, since
// it takes them for the default of every file system: without nosuid, a line of
// fstab means suid. For the options user and users it says nosuid and nodev.
func (o *mountOptions) addDropped() {
	for _, flag := range []string{"suid", "dev"} {
		if !slices.Contains(o.mount.Flags, "no"+flag) && !slices.Contains(o.mount.Flags, flag) {
			o.mount.Flags = append(o.mount.Flags, flag)
		}
	}
}

func optionNames() []string {
	names := append(slices.Clone(kernelFlags), otherOptions...)
	names = append(names, slices.Sorted(maps.Keys(defaultFlags))...)
	for _, x := range ownOptions() {
		names = append(names, x.name)
	}
	return names
}

// splitOptions splits at commas; a backslash takes the next character as it is.
func splitOptions(list string) []string {
	var out []string
	var word strings.Builder
	for i := 0; i < len(list); i++ {
		switch {
		case list[i] == '\\' && i+1 < len(list):
			i++
			word.WriteByte(list[i])
		case list[i] == ',':
			out = append(out, word.String())
			word.Reset()
		default:
			word.WriteByte(list[i])
		}
	}
	return append(out, word.String())
}

// source takes the first field of a line of fstab: a path is the data folder,
// a word just a name for the mount table.
func (o *mountOptions) source(s string) error {
	if o.mount.Source == "" {
		o.mount.Source = s
	}
	if !strings.Contains(s, "/") {
		return nil
	}
	if o.dir != "" && filepath.Clean(o.dir) != filepath.Clean(s) {
		return fmt.Errorf("the source %s and the option dir=%s name two data folders", s, o.dir)
	}
	o.dir = s
	return nil
}
