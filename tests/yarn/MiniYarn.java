import java.io.FileOutputStream;
import java.io.OutputStream;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** One resource manager and one node manager on loopback, until the process is killed; writes the settings of its clients. */
public class MiniYarn {
  public static void main(String[] arguments) throws Exception {
    Configuration conf = new YarnConfiguration();
    String managers = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.";
    conf.set("yarn.resourcemanager.scheduler.class", managers + "fifo.FifoScheduler");
    conf.set("yarn.nodemanager.resource.memory-mb", "6144");
    conf.set("yarn.nodemanager.resource.cpu-vcores", "4");
    conf.set("yarn.scheduler.minimum-allocation-mb", "256");
    conf.set("yarn.nodemanager.vmem-check-enabled", "false");
    conf.set("yarn.nodemanager.pmem-check-enabled", "false");
    conf.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "99.9");
    MiniYARNCluster cluster = new MiniYARNCluster("headwater", 1, 1, 1);
    cluster.init(conf);
    cluster.start();
    Configuration clients = new Configuration(false);
    for (Map.Entry<String, String> entry : cluster.getConfig()) {
      if (entry.getKey().startsWith("yarn.resourcemanager") || entry.getKey().startsWith("yarn.client")) {
        clients.set(entry.getKey(), entry.getValue());
      }
    }
    write(clients, arguments[0] + "/yarn-site.xml");
    Configuration core = new Configuration(false);
    core.set("fs.defaultFS", "file:///");
    write(core, arguments[0] + "/core-site.xml");
    System.out.println("READY");
    Thread.sleep(Long.MAX_VALUE);
  }

  private static void write(Configuration conf, String file) throws Exception {
    try (OutputStream stream = new FileOutputStream(file)) {
      conf.writeXml(stream);
    }
  }
}
