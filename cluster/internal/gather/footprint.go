package gather

// Footprint is which keys the members of a batch read and write, where the server decides
// which of them hold before it writes any: then none may read what another one writes. What
// several set without having read it is what the last of them that holds sets, as if they went
// one after another.
type Footprint struct{ read, set, deleted map[string]int }

// Add adds what a member reads, sets and deletes, unless it depends on those that are there.
func (f *Footprint) Add(read, set, deleted []string) bool {
	if hasOne(read, f.set, f.deleted) || hasOne(set, f.read, f.deleted) || hasOne(deleted, f.read, f.set, f.deleted) {
		return false
	}
	count(&f.read, read)
	count(&f.set, set)
	count(&f.deleted, deleted)
	return true
}

// Sets returns how many members set a key.
func (f *Footprint) Sets(key string) int { return f.set[key] }

// hasOne reports whether one of keys is in one of the sets.
func hasOne(keys []string, sets ...map[string]int) bool {
	for _, key := range keys {
		for _, set := range sets {
			if set[key] > 0 {
				return true
			}
		}
	}
	return false
}

func count(set *map[string]int, keys []string) {
	if *set == nil {
		*set = make(map[string]int)
	}
	for _, key := range keys {
		(*set)[key]++
	}
}
