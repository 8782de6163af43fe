package server

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"ogw/cmd/ogw/config"
	"ogw/httpapi/admin"
	"ogw/httpapi/apierr"
	"ogw/nfsserver"
	"ogw/vfs"
)

const (
	// exportSetting is where the store keeps the exports that were added.
	exportSetting = "nfs/exports"
	// exportVersion is the version of what stands there.
	exportVersion = 1
	// maxStoredExports bounds them: all are read at once, and looked through
	// at every mount.
	maxStoredExports = 1000
	// maxExportClients bounds the networks of one.
	maxExportClients = 256
	// exportPoll is how often a process looks for the changes of others.
	exportPoll = 2 * time.Second
)

// exportBook keeps the exports of all NFS gateways: what the configuration
// says, and what was added at run time, which stands in the store. It
// implements admin.Exports.
//
// Lock order: mu is held while the store is read and the servers are notified, so
// that what was read last is what they end with. No transaction takes it.
type exportBook struct {
	fs  *vfs.FS
	log *slog.Logger

	gateways []exportGateway

	mu      sync.Mutex
	applied string // the stored text that the servers know

	stop context.CancelFunc
	wait sync.WaitGroup
}

// exportGateway is a gateway and what its configuration exports.
type exportGateway struct {
	config config.Gateway
	server *nfsserver.Server // nil: not of this process
}

// storedExports is the setting.
type storedExports struct {
	Version int            `json:"version"`
	Exports []storedExport `json:"exports"`
}

// storedExport is an export that was added. Its secret is not stored.
type storedExport struct {
	admin.Export
	SecretSum string `json:"secret_sum,omitempty"`
}

func newExportBook(fs *vfs.FS, log *slog.Logger, gateways []exportGateway) *exportBook {
	return &exportBook{fs: fs, log: log, gateways: gateways}
}

// open gives the servers what they export, and goes on giving them what
// other processes change. Without it the book is for one command.
func (b *exportBook) open(ctx context.Context) error {
	if err := b.refresh(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	if !b.fs.Exclusive() && len(b.gateways) > 0 {
		b.wait.Go(func() { b.poll(ctx) })
	}
	return nil
}

func (b *exportBook) poll(ctx context.Context) {
	t := time.NewTicker(exportPoll)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if err := b.refresh(ctx); err != nil && ctx.Err() == nil {
				b.log.Warn("exports cannot be read", "error", err)
			}
		}
	}
}

func (b *exportBook) close() {
	if b != nil && b.stop != nil {
		b.stop()
		b.wait.Wait()
	}
}

// refresh reads the stored exports and gives them to every server, if they changed.
func (b *exportBook) refresh(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, followWait)
	defer cancel()
	text, err := b.fs.Setting(ctx, exportSetting)
	if err != nil {
		return err
	}
	stored, err := decodeExports(text)
	if err != nil {
		return err
	}
	if b.applied == "x"+string(text) {
		return nil
	}
	for _, g := range b.gateways {
		if g.server == nil {
			continue
		}
		list := configuredExports(g.config)
		for _, e := range stored.Exports {
			x := e.nfs()
			x.Insecure = x.Insecure || g.config.Insecure
			list = append(list, x)
		}
		if len(list) == 0 {
			b.log.Warn("this gateway exports nothing yet; ogw export add says what", "gateway", g.config.Name)
		}
		if err := g.server.SetExports(list); err != nil {
			return err
		}
	}
	b.applied = "x" + string(text)
	return nil
}

func decodeExports(text []byte) (storedExports, error) {
	s := storedExports{Version: exportVersion}
	if text == nil {
		return s, nil
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%w: the stored exports: %w", vfs.ErrCorrupt, err)
	}
	if s.Version != exportVersion {
		return s, fmt.Errorf("%w: the stored exports have version %d, this program knows %d", vfs.ErrNotSupported, s.Version, exportVersion)
	}
	return s, nil
}

// nfs is the export as a server wants it.
func (e storedExport) nfs() nfsserver.Export {
	x := nfsserver.Export{
		Name: e.ID, Path: e.Path, ReadOnly: e.ReadOnly, Insecure: e.Insecure, Squash: nfsserver.Squash(e.Squash),
		AnonUID: e.AnonUID, AnonGID: e.AnonGID, SecretSum: e.SecretSum, Expires: e.Expires,
	}
	for _, s := range e.Clients {
		if n, err := config.ParseNetwork(s); err == nil { // checked when it was added
			x.Networks = append(x.Networks, n)
		}
	}
	return x
}

// configuredExports are those of the configuration; without any, a gateway
// on loopback exports the root for everyone and as they are, and others
// export what was added alone.
func configuredExports(g config.Gateway) []nfsserver.Export {
	if len(g.Exports) == 0 {
		if !config.Loopback(g.Listen) {
			return nil
		}
		return []nfsserver.Export{{Path: "/", Insecure: g.Insecure, Squash: nfsserver.SquashNone}}
	}
	var out []nfsserver.Export
	for _, e := range g.Exports {
		x := nfsserver.Export{
			Path: e.Path, ReadOnly: e.ReadOnly, Insecure: e.Insecure || g.Insecure,
			Squash: nfsserver.Squash(e.Squash), AnonUID: e.AnonUID, AnonGID: e.AnonGID, Secret: e.Secret,
		}
		if x.Squash == "" {
			x.Squash = nfsserver.SquashRoot
		}
		for _, s := range e.Clients {
			if n, err := config.ParseNetwork(s); err == nil { // validated before
				x.Networks = append(x.Networks, n)
			}
		}
		out = append(out, x)
	}
	return out
}

// List implements admin.Exports: the configured ones first.
func (b *exportBook) List(ctx context.Context) ([]admin.Export, error) {
	text, err := b.fs.Setting(ctx, exportSetting)
	if err != nil {
		return nil, err
	}
	stored, err := decodeExports(text)
	if err != nil {
		return nil, err
	}
	out := []admin.Export{}
	for _, g := range b.gateways {
		for _, x := range configuredExports(g.config) {
			e := admin.Export{
				Gateway: g.config.Name, Path: x.Path, Clients: []string{}, ReadOnly: x.ReadOnly, Insecure: x.Insecure,
				Squash: string(x.Squash), AnonUID: x.AnonUID, AnonGID: x.AnonGID, NeedsSecret: x.Secret != "",
			}
			for _, n := range x.Networks {
				e.Clients = append(e.Clients, n.String())
			}
			out = append(out, e)
		}
	}
	for _, e := range stored.Exports {
		out = append(out, e.Export)
	}
	return out, nil
}

// Add implements admin.Exports.
func (b *exportBook) Add(ctx context.Context, q admin.AddExport) (admin.Export, error) {
	e, secret, err := newStoredExport(q)
	if err != nil {
		return admin.Export{}, fmt.Errorf("%w: %w", apierr.ErrBadRequest, err)
	}
	a, err := b.fs.ResolveExact(ctx, vfs.Root, e.Path)
	if err == nil && !a.IsDir() {
		err = vfs.ErrNotDir
	}
	if err != nil {
		return admin.Export{}, fmt.Errorf("export %s: %w", e.Path, err)
	}
	shown, err := b.update(ctx, func(s *storedExports) error {
		if len(s.Exports) >= maxStoredExports {
			return fmt.Errorf("%w: %d exports were added already: revoke some", apierr.ErrBadRequest, len(s.Exports))
		}
		s.Exports = append(s.Exports, e)
		return nil
	})
	if err != nil {
		return admin.Export{}, err
	}
	e.Secret = secret
	if shown != nil { // it is stored all the same, and its secret is nowhere else
		b.log.Error("an export was added that the servers do not have yet", "export", e.ID, "error", shown)
		e.Pending = shown.Error()
	}
	return e.Export, nil
}

// Revoke implements admin.Exports.
func (b *exportBook) Revoke(ctx context.Context, id string) error {
	shown, err := b.update(ctx, func(s *storedExports) error {
		n := len(s.Exports)
		s.Exports = slices.DeleteFunc(s.Exports, func(e storedExport) bool { return e.ID == id })
		if len(s.Exports) == n {
			return &unknownExport{id}
		}
		return nil
	})
	if shown != nil { // who mounted it may still use it
		return shown
	}
	return err
}

// unknownExport is a vfs.ErrNotExist that speaks of no file.
type unknownExport struct{ id string }

// Error implements error.
func (e *unknownExport) Error() string {
	return fmt.Sprintf("no export was added with the ID %q; ogw export list shows those that were", e.id)
}

// Unwrap returns the class.
func (e *unknownExport) Unwrap() error { return vfs.ErrNotExist }

// update changes what is stored and notifies the servers of this process, also if
// that fails: the change may be stored for all that, or may have been before, by a
// request whose client did not wait. shown is why they could not be notified.
func (b *exportBook) update(ctx context.Context, change func(*storedExports) error) (shown, err error) {
	err = b.fs.UpdateSetting(ctx, exportSetting, func(old []byte) ([]byte, error) {
		s, err := decodeExports(old)
		if err != nil {
			return nil, err
		}
		if err := change(&s); err != nil {
			return nil, err
		}
		return json.Marshal(s)
	})
	return b.refresh(context.WithoutCancel(ctx)), err
}

// newStoredExport checks what was asked for, and makes a secret.
func newStoredExport(q admin.AddExport) (e storedExport, secret string, err error) {
	switch {
	case len(q.Clients) == 0 && !q.Secret:
		return e, "", errors.New("say who may mount it: networks (0.0.0.0/0 and ::/0 are everyone), or a secret")
	case len(q.Clients) > maxExportClients:
		return e, "", fmt.Errorf("%d client networks, at most %d are allowed", len(q.Clients), maxExportClients)
	case !q.Expires.IsZero() && !q.Expires.After(time.Now()):
		return e, "", fmt.Errorf("it would have expired at %s", q.Expires.Format(time.RFC3339))
	}
	e.Export = admin.Export{
		ID: randomWord(5), Path: q.Path, Clients: []string{}, ReadOnly: q.ReadOnly, Insecure: q.Insecure, Squash: q.Squash,
		AnonUID: q.AnonUID, AnonGID: q.AnonGID, Created: time.Now().UTC().Truncate(time.Second),
		Expires: q.Expires.UTC(), NeedsSecret: q.Secret,
	}
	if e.Squash == "" {
		e.Squash = string(nfsserver.SquashRoot)
	}
	for _, c := range q.Clients {
		n, err := config.ParseNetwork(c)
		if err != nil {
			return e, "", err
		}
		e.Clients = append(e.Clients, n.String())
	}
	if q.Secret {
		secret = randomWord(20)
		e.SecretSum = nfsserver.SecretSum(secret)
	}
	return e, secret, nfsserver.CheckExport(e.nfs())
}

// randomWord has 8 random bits for each of n, in letters and digits that
// survive a mount command line.
func randomWord(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}
