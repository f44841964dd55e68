Programs that assemble: found on the path, given, broken, left out.

-- case one that is found and broken is left out
-- program ptxas
#!/bin/sh
echo I am broken
exit 1
-- args
compile linear --arch sm_80 --dqk 16 --dhv 16 -o out
-- exit 0
-- stderr
does not assemble these kernels: going on without it
! TG0591
-- stdout
(without ptxas: no cubin)

-- case ... by explain too
-- program ptxas
#!/bin/sh
exit 1
-- args
explain linear --arch sm_80 --dqk 16 --dhv 16
-- exit 0
-- stdout
(without ptxas: registers unknown)

-- case one that is given and broken is an error
-- program ptxas
#!/bin/sh
echo I am broken
exit 1
-- args
compile linear --arch sm_80 --dqk 16 --dhv 16 -o out --ptxas ./ptxas
-- exit 1
-- stderr
TG0591
ptxas refused the PTX: I am broken

-- case one that writes nothing
-- program ptxas
#!/bin/sh
exit 0
-- args
compile linear --arch sm_80 --dqk 16 --dhv 16 -o out --ptxas ./ptxas
-- exit 1
-- stderr
ptxas wrote no cubin

-- case one that is not there
-- args
compile linear --arch sm_80 --dqk 16 --dhv 16 -o out --ptxas /nowhere/ptxas
-- exit 1
-- stderr
/nowhere/ptxas could not be started: No such file or directory

-- case none
-- program ptxas
#!/bin/sh
exit 1
-- args
compile linear --arch sm_80 --dqk 16 --dhv 16 -o out --ptxas none
-- exit 0
-- stderr
! does not assemble
-- stdout
(without ptxas: no cubin)
