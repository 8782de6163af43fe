package fair

import (
	"testing"
)

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"127.0.0.1:1", "127.0.0.1:2", true},
		{"127.0.0.1:1", "127.0.0.2:1", false},
		{"[2001:db8::1]:1", "[2001:db8::ffff:1]:2", true},
		{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		{"[::ffff:10.0.0.1]:1", "10.0.0.1:7", true},
		{"[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.2]:1", false},
		{"[fe80::1%eth0]:1", "[fe80::1%eth1]:1", true},
		{"@", "", true},
	} {
		if got := Address(c.a) == Address(c.b); got != c.same {
			t.Errorf("%s and %s: same is %v", c.a, c.b, got)
		}
	}
	if User("a") == User("b") || User("a") == Address("1.2.3.4:1") {
		t.Error("users are not apart")
	}
}

// take takes single units until refused.
func take(p *Pool, k Key) (n int) {
	for p.Take(k, 1) {
		n++
	}
	return n
}

func TestPoolLeavesRoom(t *testing.T) {
	p := NewPool(1024)
	keys := []Key{User("a"), User("b"), User("c"), User("d")}
	if n := take(p, keys[0]); n != 512 {
		t.Errorf("alone: %d of 1024", n)
	}
	for i, k := range keys[1:] {
		if n := take(p, k); n < 1024>>(i+2) {
			t.Errorf("client %d got %d", i+2, n)
		}
	}
	for i := range 64 {
		if p.InUse() == 1024 {
			break
		}
		k := User(string(rune('0' + i)))
		if n := take(p, k); n < 16 && p.InUse() < 1024 {
			t.Errorf("late client %d got %d, %d in use", i, n, p.InUse())
		}
	}
}

func TestPoolSmall(t *testing.T) {
	p := NewPool(4)
	if n := take(p, User("a")); n != 4 {
		t.Errorf("%d of 4", n)
	}
	p.Give(User("a"), 3)
	if !p.Take(User("b"), 2) || p.Take(User("b"), 2) {
		t.Error("two of three, then none of one")
	}
	p.Give(User("b"), 2)
	p.Give(User("a"), 1)
	if p.InUse() != 0 {
		t.Errorf("%d in use", p.InUse())
	}
}

func BenchmarkPool(b *testing.B) {
	p := NewPool(1024)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			k := Address("127.0.0.1:4711")
			if p.Take(k, 1) {
				p.Give(k, 1)
			}
		}
	})
}
