package secrets

import (
	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/seal"
)

// NoteClear takes note that secrets are stored in clear, if they are: what
// replaces or removes them leaves them in the engine's files, until Seal has the
// engine erase them.
func NoteClear(t cluster.Txn, keys *seal.Keyring, secrets int) error {
	if keys != nil || secrets == 0 {
		return nil
	}
	due, err := record.Counter(t, record.CounterErase)
	if err != nil || due != 0 {
		return err
	}
	return record.SetCounter(t, record.CounterErase, 1)
}
