package gather

// Footprint is which keys the members of a batch read and write, where the server decides
// which of them hold before it writes any: then none may read or write what another writes.
type Footprint struct{ read, written map[string]struct{} }

// Add adds what a member reads and writes, unless it depends on those that are there.
func (f *Footprint) Add(read, written []string) bool {
	for _, key := range read {
		if _, ok := f.written[key]; ok {
			return false
		}
	}
	for _, key := range written {
		if _, ok := f.written[key]; ok {
			return false
		}
		if _, ok := f.read[key]; ok {
			return false
		}
	}
	if f.read == nil {
		f.read, f.written = make(map[string]struct{}), make(map[string]struct{})
	}
	for _, key := range read {
		f.read[key] = struct{}{}
	}
	for _, key := range written {
		f.written[key] = struct{}{}
	}
	return true
}
