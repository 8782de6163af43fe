package server

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"ogw/cmd/ogw/config"
	"ogw/vfs"
	"ogw/vfs/seal"
)

// KeyVariable holds the keys of the store in the environment: those of a key
// file, separated by commas or line ends.
const KeyVariable = "OGW_CLUSTER_KEY"

// KeyError describes keys that are configured wrongly.
type KeyError struct{ err error }

// Error implements error.
func (e *KeyError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.err }

// Keys returns the keys that seal the secrets of the store, nil if none
// are configured, and KeyError.
func Keys(c *config.Config) (*seal.Keyring, error) { return KeysBy(c, KeyVariable) }

// KeysBy is Keys with another variable.
func KeysBy(c *config.Config, variable string) (*seal.Keyring, error) {
	text := os.Getenv(variable)
	switch {
	case text != "" && c.Cluster.KeyFile != "":
		return nil, &KeyError{fmt.Errorf("keys come from cluster.key_file or from %s, not from both", variable)}
	case text != "":
		k, err := seal.Parse(strings.ReplaceAll(text, ",", "\n"))
		if err != nil {
			return nil, &KeyError{fmt.Errorf("%s: %w", variable, err)}
		}
		return k, nil
	case c.Cluster.KeyFile == "":
		return nil, nil
	}
	k, err := seal.Load(c.Cluster.KeyFile, c.Cluster.Dir)
	if err != nil {
		return nil, &KeyError{fmt.Errorf("cluster.key_file: %w", err)}
	}
	return k, nil
}

// forgetKeys keeps the keys from the programs that this process starts.
func forgetKeys() { _ = os.Unsetenv(KeyVariable) } // fails for bad names only

// tellSealing logs what became of the secrets, and how to go on without those
// that cannot be opened. It shows no secret.
func tellSealing(s vfs.SealState, log *slog.Logger) {
	if s.Sealed > 0 {
		log.Info("the secrets of the store are sealed, and erased where they stood before", "key", s.Keys[0], "secrets", s.Sealed)
	}
	if s.Damaged > 0 {
		log.Warn("records with secrets are damaged: what they hold stays as it is stored, maybe in clear", "records", s.Damaged)
	}
	if len(s.Missing) == 0 {
		return
	}
	var users []string
	for _, l := range s.Locked {
		users = append(users, l.User)
	}
	log.Warn("secrets of the store are sealed with keys that are not configured: data can be read, these access keys are refused until the keys are in cluster.key_file; if they are lost, give new ones with ogw user key add NAME",
		"missing_keys", s.Missing, "access_keys", len(s.Locked), "users", uniqueWords(users))
}

// maxToldUsers bounds the names in one line of the log.
const maxToldUsers = 20

func uniqueWords(list []string) string {
	var out []string
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s] {
			continue
		}
		if seen[s] = true; len(out) == maxToldUsers {
			return strings.Join(out, ",") + ",…"
		}
		out = append(out, s)
	}
	return strings.Join(out, ",")
}
