package coherence

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"testing"
)

func TestMessage(t *testing.T) {
	for _, m := range []message{
		{kind: renew, number: 1<<63 + 5},
		{kind: bye},
		{kind: told, number: 7, begun: []change{{1, []Line{0, lines - 1}}, {2, []Line{}}}, ended: []uint64{1, 1 << 40}},
	} {
		b := m.append([]byte("before"))
		got, err := readMessage(bufio.NewReader(bytes.NewReader(b[len("before"):])))
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v, %v; want %+v", got, err, m)
		}
	}
	for name, b := range map[string][]byte{
		"empty":    {0, 0, 0, 0},
		"large":    binary.BigEndian.AppendUint32(nil, maxMessage+1),
		"counts":   {0, 0, 0, 4, byte(told), 0, 100, 0},
		"line":     {0, 0, 0, 9, byte(told), 0, 1, 0, 1, 1, 0x80, 0x80, 4},
		"trailing": {0, 0, 0, 5, byte(bye), 0, 0, 0, 0},
	} {
		if m, err := readMessage(bufio.NewReader(bytes.NewReader(b))); !errors.Is(err, errMessage) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func FuzzMessage(f *testing.F) {
	m := message{kind: told, number: 7, begun: []change{{1, []Line{0, 5}}}, ended: []uint64{1}}
	f.Add(m.append(nil)[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		m, err := parseMessage(b)
		if err != nil {
			return
		}
		again, err := parseMessage(m.append(nil)[4:])
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%+v became %+v, %v", m, again, err)
		}
	})
}

// readMessages returns all that are in b.
func readMessages(b []byte) (list []message, err error) {
	for r := bufio.NewReader(bytes.NewReader(b)); ; {
		m, err := readMessage(r)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
}
