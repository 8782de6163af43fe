package policy

import (
	"runtime"
	"testing"
)

// kept parses n documents of the largest size, and returns how many pieces of memory one is
// and how many bytes, for one of its text.
func kept(tb testing.TB, n int) (docs []*Document, pieces, bytes float64) {
	tb.Helper()
	text := []byte(largeDocument("bkt"))
	var before, after runtime.MemStats
	docs = make([]*Document, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range docs {
		d, err := Parse(text, Options{Bucket: "bkt"})
		if err != nil {
			tb.Fatal(err)
		}
		docs[i] = d
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return docs, float64(after.HeapObjects-before.HeapObjects) / float64(n), float64(after.HeapAlloc-before.HeapAlloc) / float64(n*len(text))
}

// A document is a few pieces of memory, however many statements it has: thousands are
// kept.
func TestFewPieces(t *testing.T) {
	docs, pieces, bytes := kept(t, 50)
	if pieces > 20 || bytes > 2 {
		t.Errorf("%.1f pieces, %.2f bytes for one of the text", pieces, bytes)
	}
	// The heap is of size classes.
	if told := float64(docs[0].Bytes()) / float64(len(largeDocument("bkt"))); told > bytes || told < 0.85*bytes {
		t.Errorf("it says %.2f bytes for one of the text, and takes %.2f", told, bytes)
	}
	runtime.KeepAlive(docs)
}

// BenchmarkCollect is what the garbage collector does about 400 documents.
func BenchmarkCollect(b *testing.B) {
	docs, pieces, bytes := kept(b, 400)
	for b.Loop() {
		runtime.GC()
	}
	b.ReportMetric(pieces, "pieces/doc")
	b.ReportMetric(bytes, "bytes/byte")
	runtime.KeepAlive(docs)
}
