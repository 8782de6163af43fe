package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// All keys of an event are written, whatever is in them, in lines that stay short.
func TestKeys(t *testing.T) {
	for _, pad := range []string{"k", `\`, "\xff", "\u200b", `"`, "\n"} {
		l, path := open(t, func(c *Config) { c.FileBytes = 64 << 20 })
		e := act("DeleteObjects", "/bucket")
		for i := range 1000 {
			k := fmt.Sprintf("%d ", i)
			e.Keys = append(e.Keys, k+strings.Repeat(pad, (1024-len(k))/len(pad)))
		}
		given := slices.Clone(e.Keys)
		l.Record(e)
		l.Record(act("CreateBucket", "/none")) // a line without keys
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		var got []string
		all := lines(t, path, 0)
		for _, x := range all {
			raw, err := json.Marshal(&x)
			if err != nil || len(raw) > 8<<10 {
				t.Errorf("%q: a line of %d bytes, %v", pad, len(raw), err)
			}
			if (len(x.Keys) > 0) != (x.Operation == "DeleteObjects") {
				t.Errorf("%q: %+v", pad, x)
			}
			for _, k := range x.Keys {
				if strings.Contains(k, `\`) { // as in a Go string, but that quotes stand for themselves
					if k, err = strconv.Unquote(`"` + strings.ReplaceAll(k, `"`, `\"`) + `"`); err != nil {
						t.Error(err)
					}
				}
				got = append(got, k)
			}
		}
		if !slices.Equal(got, given) || l.Stats().Lines[Admin] != uint64(len(all)) {
			t.Errorf("%q: %d of %d keys in %d lines", pad, len(got), len(given), len(all))
		}
	}
}
