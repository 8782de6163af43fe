# The resource layer of boto3, with each python3 of PATH that has it.
tried=0
for python in $(type -ap python3 | xargs -n1 realpath | sort -u); do
	"$python" -c 'import boto3' || continue
	"$python" "$HERE/resources.py"
	tried=$((tried + 1))
done
[ "$tried" -gt 0 ]
