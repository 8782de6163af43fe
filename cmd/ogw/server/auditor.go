package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"ogw/cmd/ogw/audit"
	"ogw/cmd/ogw/config"
	"ogw/httpapi"
	"ogw/httpapi/admin"
	"ogw/httpapi/apierr"
	"ogw/vfs"
	"ogw/vfs/clients/guess"
	"ogw/vfs/users"
)

// processDoor is the door of what nobody asked for through a door.
const processDoor = "process"

// auditor makes lines of the audit log of what doors report.
type auditor struct {
	log     *audit.Log // nil: nothing is written
	self    string     // this process, as others stand in the log
	version string     // of the program
}

// openAudit opens the audit log of a store.
func openAudit(cfg *config.Config, version string, log *slog.Logger) (*auditor, error) {
	a := cfg.Audit
	l, err := audit.Open(audit.Config{
		Admin: a.Admin, Access: a.Access, Data: a.Data, File: cfg.AuditFile(), Syslog: a.Syslog,
		FileBytes: int64(a.Rotate), Keep: a.Keep, Logger: log,
	})
	return &auditor{log: l, self: admin.LocalPeer(uint32(os.Getuid()), os.Getpid()).String(), version: version}, err
}

// http returns the function that gets the requests of a door. code gives an error
// the door's own name.
func (a *auditor) http(door, gateway string, code func(error) string) func(*httpapi.Record) {
	if a.log == nil {
		return func(*httpapi.Record) {}
	}
	return func(r *httpapi.Record) {
		class := classOf(door, r.Operation)
		if r.Subject.Admin {
			class = audit.Admin
		}
		result := httpResult(r)
		if result != audit.Refused && !a.log.Wants(class) {
			return
		}
		e := audit.Event{
			Class: class, Door: door, Gateway: gateway, Operation: r.Operation, Target: r.Subject.Target,
			User: r.Identity, UserID: r.Subject.UserID, UID: r.Subject.UID, From: r.Remote,
			Result: result, Request: r.RequestID, Detail: r.Subject.Detail, Agent: r.Subject.Agent,
		}
		if r.Subject.Key != "" {
			e.Detail = strings.TrimSpace("key=" + r.Subject.Key + " " + e.Detail)
		}
		if e.Operation == "" {
			e.Operation = r.Method // refused before it was understood
		}
		if e.Target == "" {
			e.Target = r.Path
		}
		if e.UID == audit.NoUID {
			e.UID = peerUID(r.Remote)
		}
		switch {
		case r.Subject.Refused != nil:
			e.Error = code(r.Subject.Refused)
		case r.Err != nil:
			e.Error = code(r.Err)
		case result != audit.OK:
			e.Error = strconv.Itoa(r.Status)
		}
		a.record(e, class, r.Subject.Removed)
	}
}

// record records how a request ended and what it removed, which is an act of its class
// also where the request is none because of something else that it asked for.
func (a *auditor) record(e audit.Event, class audit.Class, removed []string) {
	if e.Result == audit.OK {
		e.Keys = removed
	}
	a.log.Record(e)
	if len(removed) > 0 && e.Result != audit.OK {
		e.Class, e.Result, e.Error, e.Keys = class, audit.OK, "", removed
		e.Detail = "deleted=" + strconv.Itoa(len(removed))
		a.log.Record(e)
	}
}

// httpResult returns how a request ended.
func httpResult(r *httpapi.Record) audit.Result {
	switch s := r.Status; {
	case errors.Is(r.Err, guess.ErrThrottled), r.Subject.Refused != nil:
		return audit.Refused
	case s == http.StatusUnauthorized, s == http.StatusForbidden, s == http.StatusTooManyRequests:
		return audit.Refused
	case s >= 400 || r.Err != nil && s != http.StatusNotModified:
		return audit.Failed
	}
	return audit.OK
}

// apiCode names the errors of REST and of the admin API.
func apiCode(err error) string { return apierr.Of(err).Code }

// peerUID returns the user of a local process, as admin.LocalPeer writes it.
func peerUID(from string) int64 {
	text, ok := strings.CutPrefix(from, "unix:uid=")
	text, _, _ = strings.Cut(text, ",")
	uid, err := strconv.ParseUint(text, 10, 32)
	if !ok || err != nil {
		return audit.NoUID
	}
	return int64(uid)
}

// process records what this process does by itself.
func (a *auditor) process(operation, target, detail string, err error) {
	e := audit.Event{Class: audit.Admin, Door: processDoor, Operation: operation, Target: target,
		UID: int64(os.Getuid()), From: a.self, Result: audit.OK, Detail: detail}
	if err != nil {
		e.Result, e.Error = audit.Failed, apiCode(err)
	}
	a.log.Record(e)
}

// sealed records that secrets were sealed with another key at this start.
func (a *auditor) sealed(s vfs.SealState) {
	if s.Sealed > 0 {
		a.process("SealSecrets", "", fmt.Sprintf("key=%s secrets=%d", s.Keys[0], s.Sealed), nil)
	}
}

// started records which configuration is in force: a change of it comes with a
// start, and shows as another digest. Secrets are not in it: who reads the log
// could try words against a digest of a weak one.
func (a *auditor) started(cfg *config.Config, firstKey *users.AccessKey) {
	if a.log == nil {
		return
	}
	if firstKey != nil {
		a.process("AddUser", RootUser, "administrator=true keys=["+firstKey.ID+"]", nil)
	}
	var text strings.Builder
	if err := cfg.Write(&text, false); err != nil {
		return // a strings.Builder takes all
	}
	sum := sha256.Sum256([]byte(text.String()))
	a.process("Start", cfg.File, fmt.Sprintf("version=%s config_sha256=%s", a.version, hex.EncodeToString(sum[:])), nil)
}

// followRename opens the file anew with each SIGHUP, for who renames it from
// outside, until what it returns is called. That the signal ends no process, or
// one at a terminal in order, is the command's.
func (a *auditor) followRename() (stop func()) {
	if a.log == nil {
		return func() {}
	}
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-received:
				a.log.Reopen()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(received)
		close(done)
	}
}

// both calls two.
func both(f, g func(*httpapi.Record)) func(*httpapi.Record) {
	return func(r *httpapi.Record) {
		f(r)
		g(r)
	}
}
