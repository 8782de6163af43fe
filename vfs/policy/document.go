package policy

// bucketARN begins the ARNs of buckets and their objects.
const bucketARN = "arn:aws:s3:::"

// Document is a policy, compiled.
type Document struct {
	statements []statement
	outline    *outline
	bytes      int
}

// statement is one statement, compiled. What decisions look at stands first.
type statement struct {
	effect       Effect // Allow or Deny
	notActions   bool
	notResources bool
	number       uint16 // in the document, of one that is in memory by itself
	who          principals
	resources    []pattern
	conditions   []condition
	actions      []pattern
	s3           actionSet // what actions and notActions say of S3's
	sid          string
}

// Sid returns the ID that statement i has in the document, "" if it has none.
func (d *Document) Sid(i int) string { return d.statements[i].sid }

// Len returns the number of statements.
func (d *Document) Len() int { return len(d.statements) }

// Bytes returns how much memory the document takes.
func (d *Document) Bytes() int { return d.bytes }
