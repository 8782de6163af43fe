package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/cmd/ogw/server"
	"ogw/httpapi/admin"
	"ogw/vfs"
)

// maxDamagedRows bounds the damaged blobs that status names.
const maxDamagedRows = 20

// status prints what runs.
type status struct {
	common
}

func statusCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "print what runs: gateways, mounts, space", Flags: commonFlags(),
		Action: action(func() command { return &status{common{env: env}} }),
	}
}

// ParseFlags implements command.
func (s *status) ParseFlags(c *cli.Context) error {
	return errors.Join(noArgs(c), s.common.ParseFlags(c))
}

// Run implements command.
func (s *status) Run(ctx context.Context) error {
	return s.with(ctx, func(x *session) error {
		st, err := x.Status(ctx)
		if err != nil {
			return err
		}
		if s.json {
			return s.printJSON(st)
		}
		return s.print(st)
	})
}

func (s *status) print(st admin.Status) error {
	rows := [][]string{{"folder", st.Dir}, {"engine", st.Engine}, {"file system", st.FSID}}
	if st.Running {
		rows = append(rows, []string{"process", "ogw " + st.Version + ", pid " + itoa(int64(st.PID)) +
			", up " + time.Since(st.Started).Round(time.Second).String()})
	} else {
		rows = append(rows, []string{"process", "none serves this folder"})
	}
	if st.Store != "" && st.Store != server.StoreWritable {
		rows = append(rows, []string{"store", strings.ToUpper(st.Store) + ": " + st.StoreError})
	}
	rows = append(rows, []string{"space", bytesText(st.FreeBytes) + " free of " + bytesText(st.TotalBytes)},
		[]string{"files", "at most " + itoa(int64(st.Files))})
	rows = append(rows, []string{"scrub", scrubText(&st.Scrub)})
	for i := range st.Scrub.Damaged {
		if i == maxDamagedRows {
			rows = append(rows, []string{"damaged", "and more: ogw quarantine list"})
			break
		}
		d := &st.Scrub.Damaged[i]
		rows = append(rows, []string{"damaged", "blob " + d.Blob + ", files: " + damagedFiles(d) + ", in " + d.Path +
			", found " + d.Found.Format(time.RFC3339)})
	}
	if n := st.Scrub.Aside; n > 0 {
		rows = append(rows, []string{"quarantine", fmt.Sprintf("%d damaged %s of %s without files, kept until ogw quarantine release",
			n, plural(n, "blob"), bytesText(st.Scrub.AsideBytes))})
	}
	if n := st.DamagedSecrets; n > 0 {
		rows = append(rows, []string{"secrets", fmt.Sprintf("%d damaged %s that could not be sealed when the store was opened; the log of that start says which",
			n, plural(n, "record"))})
	}
	for _, u := range st.Users {
		rows = append(rows, []string{"used by", userText(&u)})
	}
	for _, g := range st.Gateways {
		note := ""
		if g.TLS {
			note = " (TLS)"
		}
		if g.Portmapper {
			note += " (known to the portmapper)"
		}
		rows = append(rows, []string{"gateway", g.Name + ": " + g.Protocol + " on " + g.Listen + note + ", " + g.State})
		for _, c := range g.Clients {
			rows = append(rows, []string{"client", clientText(g.Name, c)})
		}
	}
	for i := range st.Mounts {
		rows = append(rows, []string{"mount", mountText(&st.Mounts[i])})
	}
	return s.table(rows)
}

// userText is a process that uses a shared store, for people. The beat of one is
// BeatEvery old at times.
func userText(u *vfs.Peer) string {
	text := fmt.Sprintf("host %s, pid %d, ogw %s, since %s", u.Host, u.PID, u.Version, u.Started.UTC().Format(time.RFC3339))
	switch {
	case !u.Beside:
	case u.Still > 2*vfs.BeatEvery:
		text += ", SILENT for " + u.Still.Round(time.Second).String()
	default:
		text += ", alive"
	}
	if u.Told {
		text += ", told of all changes"
	}
	return text
}

// mountText is a mount for people.
func mountText(m *admin.Mount) string {
	switch {
	case m.Missing != "":
		return m.Dir + ", NOT SERVED: " + m.Missing
	case m.IOUring == "on":
		return m.Dir + " (io_uring)"
	}
	return m.Dir
}

// scrubText is the state of the scrub for people.
func scrubText(s *vfs.ScrubState) string {
	text := "never ran"
	switch {
	case s.Running:
		text = "since " + s.Started.Format(time.RFC3339) + ", " + itoa(s.Blobs) + " blobs, " + bytesText(s.Bytes) + " verified"
	case !s.Finished.IsZero():
		text = "all " + itoa(s.Blobs) + " blobs, " + bytesText(s.Bytes) + " verified on " + s.Finished.Format(time.RFC3339)
	}
	if s.Rate == 0 {
		text += "; it is off"
	} else {
		text += ", " + bytesText(s.Rate) + "/s at the most"
	}
	return text + ", " + itoa(int64(len(s.Damaged))) + " damaged"
}

// clientText is one connection of an NFS gateway for people.
func clientText(gateway string, c admin.NFSClient) string {
	who := c.Address
	if c.Machine != "" {
		who = c.Machine + " (" + c.Address + ")"
	}
	mounts := ""
	if len(c.Mounts) > 0 {
		mounts = ", mounted " + strings.Join(c.Mounts, " ")
	}
	return gateway + ": " + who + mounts + ", since " + time.Since(c.Since).Round(time.Second).String() + ", " +
		itoa(int64(c.Calls)) + " calls, " + bytesText(int64(c.BytesIn)) + " in, " + bytesText(int64(c.BytesOut)) + " out"
}
