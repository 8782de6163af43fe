package lock

// BeginGrace implements Locks.
func (m *Manager) BeginGrace() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grace++
}

// EndGrace implements Locks.
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

// InGrace implements Locks.
func (m *Manager) InGrace() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.grace > 0
}

func (m *Manager) inGrace(s Space) bool { return s != Flock && m.grace > 0 }
