package config

import (
	"fmt"
	"strings"
)

// Suggestion names the nearest of known, if one is near.
func Suggestion(name string, known []string) string {
	best, bestCost := "", len(name)/2+1 // further away is another word
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, k := range known {
		cost := distance(name, k)
		if k[strings.LastIndexByte(k, '.')+1:] == last {
			cost = min(cost, 1) // the right key in the wrong section
		}
		if cost < bestCost {
			best, bestCost = k, cost
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
