import time
from tests.product_process import ProductProcess
def test_it(tmp_path, running_simulator):
    t=time.time()
    running_simulator.reset()
    with ProductProcess(tmp_path/"p", simulator=running_simulator) as p:
        print("up", time.time()-t)
        i=p.submit(prompt="x")
        d=p.wait_until(i,"completed","failed")
        print(time.time()-t, d["state"], d["charge"])
        p.stop("web"); print("stopped", time.time()-t); p.start("web"); print(time.time()-t)
        p.assert_invariants()
        print(p.logs())
    print("down", time.time()-t)
