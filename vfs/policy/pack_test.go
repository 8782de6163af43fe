package policy

import (
	"runtime"
	"testing"
)

// kept has n documents made of one text of the largest size, and returns how many pieces
// of memory one is and how many bytes.
func kept[T any](tb testing.TB, n int, one func(text []byte) (T, error)) (docs []T, pieces, bytes float64) {
	tb.Helper()
	text := []byte(largeDocument("bkt"))
	var before, after runtime.MemStats
	docs = make([]T, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range docs {
		d, err := one(text)
		if err != nil {
			tb.Fatal(err)
		}
		docs[i] = d
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return docs, float64(after.HeapObjects-before.HeapObjects) / float64(n), float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
}

func parseWhole(text []byte) (*Document, error) { return Parse(text, Options{Bucket: "bkt"}) }

// parsePart has one statement in memory.
func parsePart(text []byte) (*Partial, error) {
	p, err := ParsePartial(text, Options{Bucket: "bkt"})
	if err != nil {
		return nil, err
	}
	return p.With(text, []int{7})
}

// A document is a few pieces of memory, however many statements it has: thousands are
// kept. One that is not kept as a whole takes a tenth of its text or so.
func TestFewPieces(t *testing.T) {
	docs, pieces, bytes := kept(t, 50, parseWhole)
	checkKept(t, pieces, 20, bytes, 40<<10, docs[0].Bytes())
	runtime.KeepAlive(docs)
	parts, pieces, bytes := kept(t, 500, parsePart)
	checkKept(t, pieces, 20, bytes, 3<<10, parts[0].Bytes())
	runtime.KeepAlive(parts)
}

func checkKept(t *testing.T, pieces, mostPieces, bytes, most float64, told int) {
	t.Helper()
	if pieces > mostPieces || bytes > most {
		t.Errorf("%.1f pieces, %.0f bytes", pieces, bytes)
	}
	// The heap is of size classes.
	if told := float64(told); told > bytes || told < 0.85*bytes {
		t.Errorf("it says %.0f bytes, and takes %.0f", told, bytes)
	}
	t.Logf("%.1f pieces, %.0f bytes, %d told", pieces, bytes, told)
}

// BenchmarkCollect is what the garbage collector does about 400 documents.
func BenchmarkCollect(b *testing.B) {
	docs, pieces, bytes := kept(b, 400, parseWhole)
	for b.Loop() {
		runtime.GC()
	}
	b.ReportMetric(pieces, "pieces/doc")
	b.ReportMetric(bytes, "bytes/doc")
	runtime.KeepAlive(docs)
}
