perl - "$INPUT" <<'PERL'
use strict; use warnings;
use Digest::SHA qw(sha256_hex); use List::Util qw(reduce sum shuffle); use Data::Dumper; use Storable qw(freeze thaw);
use Math::BigInt; use POSIX qw(floor); use Encode;
$Data::Dumper::Sortkeys = 1;
sub show { my ($name, $value) = @_; print "$name ", substr(sha256_hex(ref $value ? Dumper($value) : $value), 0, 16), "\n" }
open my $file, '<:raw', $ARGV[0] or die; read $file, my $bytes, 1_000_000; close $file;
my %strings; $strings{$1}++ while $bytes =~ /([\x20-\x7e]{5,})/g; show "strings", \%strings;
show "unpack", [unpack "V*", $bytes]; my $copy = $bytes; my $zeros = ($copy =~ tr/\0//); print "zeros $zeros\n";
my @sorted = sort { $strings{$b} <=> $strings{$a} || $a cmp $b } keys %strings; show "sort", \@sorted;
show "join", join ",", map { sprintf "%s=%05.2f", $_, sqrt $strings{$_} } @sorted;
my $factorial = Math::BigInt->new(1); $factorial *= $_ for 1 .. 300; show "bigint", "$factorial";
show "storable", thaw(freeze(\%strings)); show "utf8", encode("UTF-8", join "", map chr, 0x100 .. 0x2fff);
my ($caught, $deep) = (0, 0); for my $n (1 .. 30000) { eval { die { n => $n } if $n % 3; 1 } or $caught += $@->{n} } print "died $caught\n";
sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) } print "fib ", fib(20), "\n";
my @lines = `printf 'a\nb\nc\n'`; print "child ", scalar @lines, "\n";
local $SIG{ALRM} = sub { print "alarm\n" }; alarm 1; select undef, undef, undef, 3;
my $text = "aaa bbb ccc " x 5000; (my $swapped = $text) =~ s/(\w+) (\w+)/$2 $1/g; show "substitute", $swapped;
PERL
perl -e 'exit 5' || echo "status $?"
perl -e 'die "gone\n"' || echo "status $?"
