package s3

import (
	"cmp"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// partOf are operations that headers choose from others.
var partOf = map[string]string{"CopyObject": "PutObject", "UploadPartCopy": "UploadPart"}

// operationRows are all operations that Amazon's SDK knows, and those that only
// browsers send, with what this door does.
func operationRows() string {
	served := Operations()
	get, del := notSetOps()
	notSet := map[string]bool{"GetObjectLegalHold": true, "GetObjectRetention": true}
	for _, s := range append(get, del...) {
		notSet[s.op.name] = true
	}
	names := []string{"PostObject", "PreflightRequest"}
	client := reflect.TypeFor[*awss3.Client]()
	for i := range client.NumMethod() {
		if name := client.Method(i).Name; name != "Options" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for name := range partly {
		if !slices.Contains(served, cmp.Or(partOf[name], name)) {
			panic(name + " is not served")
		}
	}
	rows := ""
	for _, name := range names {
		base := name
		if b, ok := partOf[name]; ok {
			base = b
		}
		answer := "yes"
		switch {
		case partly[name] != "":
			answer = "partly: " + partly[name]
		case notSet[name]:
			answer = "nothing is configured"
		case !slices.Contains(served, base):
			answer = "501"
		}
		rows += "| " + name + " | " + answer + " |\n"
	}
	return rows
}

// TestOperationsDocument holds docs/s3-operations.md against the router.
func TestOperationsDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/s3-operations.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, table, _ := strings.Cut(string(doc), "|---|---|\n"); table != operationRows() {
		t.Errorf("the table should be\n%s", operationRows())
	}
}
