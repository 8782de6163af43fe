// Package formatdoc reads the examples of docs/format.md, which tests hold
// against the codecs.
//
// An example is an indented block that begins with "example NAME". Each of its
// further lines is bytes, and after two spaces what they are. Bytes are in
// hexadecimal, with "*N" after them for N times, or a quoted string of Go.
// Lines that begin with "key" are the key's, the others the value's.
package formatdoc

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Example is a stored pair, or a file, which has no key.
type Example struct{ Key, Value []byte }

// Read returns the examples of a document by name.
func Read(path string) (map[string]Example, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := map[string]Example{}
	name := ""
	for line := range strings.Lines(string(text)) {
		line, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		first, isHead := strings.CutPrefix(line, "example ")
		switch {
		case !indented:
			name = ""
		case isHead:
			name = first
			if _, twice := all[name]; twice {
				return nil, fmt.Errorf("%s: example %s stands there twice", path, name)
			}
			all[name] = Example{}
		case name != "":
			e := all[name]
			if err := e.add(line); err != nil {
				return nil, fmt.Errorf("%s: example %s: %q: %w", path, name, line, err)
			}
			all[name] = e
		}
	}
	return all, nil
}

func (e *Example) add(line string) error {
	rest, isKey := strings.CutPrefix(line, "key ")
	b, err := parse(strings.TrimSpace(rest))
	if isKey {
		e.Key = append(e.Key, b...)
	} else {
		e.Value = append(e.Value, b...)
	}
	return err
}

func parse(line string) ([]byte, error) {
	if quoted, err := strconv.QuotedPrefix(line); err == nil {
		text, err := strconv.Unquote(quoted)
		return []byte(text), err
	}
	digits, _, _ := strings.Cut(line, "  ")
	digits, times, repeated := strings.Cut(digits, "*")
	n := 1
	if repeated {
		var err error
		if n, err = strconv.Atoi(times); err != nil {
			return nil, err
		}
	}
	b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	return bytes.Repeat(b, n), err
}
