package example.wrenfold.tracking;

import java.time.Clock;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.ConfigurationPropertiesScan;
import org.springframework.context.annotation.Bean;

/** Starts tracking-hub. */
@SpringBootApplication
@ConfigurationPropertiesScan
public class TrackingHubApplication {

    public static void main(String[] args) {
        SpringApplication.run(TrackingHubApplication.class, args);
    }

    /** One clock for everything, so that tests can stop it. */
    @Bean
    Clock clock() {
        return Clock.systemUTC();
    }
}
