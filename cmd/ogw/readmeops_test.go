package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// operationLines are the operations of one service of docs/s3-operations.md or
// docs/iam-operations.md, which tests hold against the routers: a line for each answer,
// in order.
func operationLines(service string, rows [][]string) string {
	by := map[string][]string{}
	for _, row := range rows {
		name, answer := row[0], row[1]
		answer, part, _ := strings.Cut(answer, ": ")
		if part != "" {
			name += " (" + part + ")"
		}
		by[answer] = append(by[answer], name)
	}
	order := []string{"yes", "partly", "nothing is configured", "501"}
	lines := ""
	for _, answer := range order {
		if names := by[answer]; names != nil {
			lines += "| " + service + " | " + answer + " | " + strings.Join(names, ", ") + " |\n"
		}
		delete(by, answer)
	}
	if len(by) != 0 {
		panic("answers that no line is for")
	}
	return lines
}

// TestReadmeOperations holds the table of README.md against those that have a line for
// each operation.
func TestReadmeOperations(t *testing.T) {
	rows := map[string][][]string{}
	row := regexp.MustCompile(`(?m)^\|(?: (iam|sts) \|)? ([A-Z]\w+) \| (.*) \|$`)
	for _, name := range []string{"/docs/s3-operations.md", "/docs/iam-operations.md"} {
		for _, m := range row.FindAllStringSubmatch(readFile(t, top+name), -1) {
			service := "S3"
			if m[1] != "" {
				service = strings.ToUpper(m[1])
			}
			rows[service] = append(rows[service], m[2:])
		}
	}
	want := ""
	for _, service := range []string{"S3", "IAM", "STS"} {
		if len(rows[service]) < 5 || !slices.IsSortedFunc(rows[service], func(a, b []string) int { return strings.Compare(a[0], b[0]) }) {
			t.Fatalf("%s: %d operations, or out of order", service, len(rows[service]))
		}
		want += operationLines(service, rows[service])
	}
	_, table, _ := strings.Cut(readFile(t, top+"/README.md"), "| API | answer | operations |\n|---|---|---|\n")
	if table, _, _ = strings.Cut(table, "\n\n"); table+"\n" != want {
		t.Errorf("the table should be\n%s", want)
	}
}
