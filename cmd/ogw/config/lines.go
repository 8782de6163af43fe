package config

import (
	"fmt"
	"regexp"
	"strings"
)

// tableLists are the tables of which there can be several.
var tableLists = []string{"gateway", "gateway.export"}

// place is where a key or the head of a table stands in a file: in lower case, whatever it is
// there. Of tables that there are several of, each has its number: "gateway[1].listen".
type place struct {
	key    string
	line   int
	header bool
}

// places finds the keys of a file, but those in inline tables and the like.
func places(text string) (list []place) {
	table, count := "", map[string]int{}
	for i, line := range strings.Split(strings.ToLower(text), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, _, _ := strings.Cut(strings.TrimLeft(line, "["), "]")
			table = numbered(strings.TrimSpace(head), strings.HasPrefix(line, "[["), count)
			list = append(list, place{table, i + 1, true})
			continue
		}
		if name, _, ok := strings.Cut(line, "="); ok {
			key := strings.Trim(strings.TrimSpace(name), `"'`)
			if table != "" {
				key = table + "." + key
			}
			list = append(list, place{key, i + 1, false})
		}
	}
	return list
}

// numbered returns the name of a table with the numbers of those that it lies in, and of
// itself if it begins one more. count has how many there are so far.
func numbered(head string, more bool, count map[string]int) string {
	name := ""
	parts := strings.Split(head, ".")
	for i, part := range parts {
		if name != "" {
			name += "."
		}
		name += part
		if i == len(parts)-1 && more {
			count[name]++
		}
		if n := count[name]; n > 0 && (more || i < len(parts)-1) {
			name += fmt.Sprintf("[%d]", n-1)
		}
	}
	return name
}

var numbers = regexp.MustCompile(`\[\d+\]`)

func unnumbered(key string) string { return numbers.ReplaceAllString(key, "") }

// lineOf returns where a key without numbers stands first, 0 if that is unknown.
func lineOf(list []place, key string) int {
	key = strings.ToLower(key)
	for _, p := range list {
		if unnumbered(p.key) == key {
			return p.line
		}
	}
	return 0
}
