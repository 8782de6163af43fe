package lock

// BeginGrace begins a time in which only Reclaim grants ranges, for those who
// held them before a restart. Other requests get ErrGrace, or wait. Flocks go
// on: no client can reclaim one. Several grace periods may overlap.
func (m *Manager) BeginGrace() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grace++
}

// EndGrace ends what BeginGrace began, and grants what waits and can be.
func (m *Manager) EndGrace() {
	m.mu.Lock()
	m.grace--
	var told []verdict
	if m.grace == 0 {
		for ino, f := range m.files {
			told = append(told, m.wake(ino, f)...)
		}
	}
	m.mu.Unlock()
	tell(told)
}

// InGrace reports whether a grace period is on.
func (m *Manager) InGrace() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.grace > 0
}

func (m *Manager) inGrace(s Space) bool { return s == Range && m.grace > 0 }
